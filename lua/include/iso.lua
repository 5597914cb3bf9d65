-- The moment of a TIME answer as Python's isoformat() writes it in UTC: microseconds and '+00:00'. The days since 1970
-- become a date by Howard Hinnant's civil_from_days ("chrono-Compatible Low-Level Date Algorithms").
local function iso_text(at)
  local seconds = tonumber(at[1])
  local days = math.floor(seconds / 86400)
  local rest = seconds - days * 86400
  local shifted = days + 719468
  local era = math.floor(shifted / 146097)
  local doe = shifted - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%06d+00:00', year, month, day, math.floor(rest / 3600),
    math.floor(rest / 60) % 60, rest % 60, tonumber(at[2]))
end

