//! Which interpreter and which site: named, or found where a Django project keeps them.

use super::PythonError;
use std::path::{Path, PathBuf};

/// The environment variables that matter here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    pub directory: PathBuf,
    pub virtual_env: Option<PathBuf>,
    pub path: Option<std::ffi::OsString>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process(directory: &Path) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self { directory: directory.to_owned(), virtual_env: set("VIRTUAL_ENV").map(PathBuf::from), path: set("PATH") }
    }
}

/// The interpreter: the named one, else that of VIRTUAL_ENV, of `.venv` in the site's folder, else `python3`.
pub(crate) fn interpreter(named: Option<&Path>, around: &Surroundings) -> Result<PathBuf, PythonError> {
    if let Some(named) = named {
        // A bare name is looked up as a shell does; a path is relative to where the worker was started.
        let found = if named.components().count() == 1 { on_path(named, around) } else { runnable(named.to_owned()) };
        return found.ok_or_else(|| PythonError::NoInterpreter(format!("there is no Python at {}", named.display())));
    }
    let beside = around.directory.join(".venv");
    let environments = around.virtual_env.iter().chain([&beside]).map(|environment| environment.join("bin/python"));
    environments.filter_map(runnable).next().or_else(|| on_path(Path::new("python3"), around)).ok_or_else(|| {
        let place = match &around.virtual_env {
            Some(environment) => format!("{}, ", environment.display()),
            None => String::new(),
        };
        let beside = beside.display();
        PythonError::NoInterpreter(format!("no Python found (looked in {place}{beside} and for python3 on PATH)"))
    })
}

fn on_path(name: &Path, around: &Surroundings) -> Option<PathBuf> {
    std::env::split_paths(around.path.as_ref()?).map(|folder| folder.join(name)).find_map(runnable)
}

fn runnable(path: PathBuf) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let meta = std::fs::metadata(&path).ok()?;
    (meta.is_file() && meta.permissions().mode() & 0o111 != 0).then_some(path)
}

/// Whether anything says that a Django site is meant: a settings module, or a `manage.py` in the folder.
pub(crate) fn has_site(settings: Option<&str>, directory: &Path) -> bool {
    let variable = || std::env::var_os("DJANGO_SETTINGS_MODULE").is_some_and(|value| !value.is_empty());
    settings.is_some() || variable() || directory.join("manage.py").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn put(path: &Path) -> PathBuf {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_owned()
    }

    #[test]
    fn the_nearest_interpreter_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let mut around = Surroundings { directory: dir.path().join("site"), ..Surroundings::default() };
        let none = interpreter(None, &around).unwrap_err().to_string();
        assert!(none.contains("site/.venv") && none.contains("python3 on PATH"), "{none}");
        let on_path = put(&dir.path().join("usr/python3"));
        around.path = Some(dir.path().join("usr").into());
        assert_eq!(interpreter(None, &around).unwrap(), on_path);
        let beside = put(&dir.path().join("site/.venv/bin/python"));
        assert_eq!(interpreter(None, &around).unwrap(), beside);
        let active = put(&dir.path().join("env/bin/python"));
        around.virtual_env = Some(dir.path().join("env"));
        assert_eq!(interpreter(None, &around).unwrap(), active);
        assert_eq!(interpreter(Some(Path::new("python3")), &around).unwrap(), on_path);
        assert_eq!(interpreter(Some(&beside), &around).unwrap(), beside);
        let wrong = interpreter(Some(&dir.path().join("nowhere")), &around).unwrap_err().to_string();
        assert!(wrong.contains("nowhere"), "{wrong}");
    }

    #[test]
    fn an_environment_without_an_interpreter_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let found = put(&dir.path().join(".venv/bin/python"));
        let virtual_env = Some(dir.path().join("gone"));
        let around = Surroundings { directory: dir.path().to_owned(), virtual_env, path: None };
        assert_eq!(interpreter(None, &around).unwrap(), found);
    }
}
