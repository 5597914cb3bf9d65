"""A retry policy in a module of its own, as a site may have it."""

import datetime


def up_to_three(context):
    """Grants a retry soon after, until the third attempt."""
    if context.attempt < 3:
        return datetime.timedelta(milliseconds=20)
    return None
