//! A Django site's tasks, run by our children and by the Python package's worker.

mod pool;
