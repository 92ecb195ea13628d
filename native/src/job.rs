//! Jobs for libuv's thread pool, and the conversion of bytes to JavaScript.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napi::bindgen_prelude::{AsyncTask, ToNapiValue, TypeName, Uint8ArraySlice};
use napi::{Env, Error, Task, ValueType, sys};

use crate::evp::{Bytes, Failure, Result};

type Work<T> = Box<dyn FnOnce() -> Result<T> + Send>;

/// One operation, which runs on a pool thread and settles one promise.
pub struct Job<T>(Option<Work<T>>);

/// Starts a job that owns everything it uses.
pub fn start<T: Send + ToNapiValue + TypeName + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> AsyncTask<Job<T>> {
    AsyncTask::new(Job(Some(Box::new(work))))
}

impl<T: Send + ToNapiValue + TypeName + 'static> Task for Job<T> {
    type Output = T;
    type JsValue = T;

    fn compute(&mut self) -> napi::Result<T> {
        let work = self
            .0
            .take()
            .ok_or_else(|| Error::from_reason("a job ran twice"))?;
        // A panic must not unwind into the calling C function, which would end the process. The work owns what it uses,
        // so nothing in a half-finished state is used again.
        let outcome = catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(Failure("the native provider panicked".to_owned())));
        outcome.map_err(to_error)
    }

    fn resolve(&mut self, _env: Env, output: T) -> napi::Result<T> {
        Ok(output)
    }
}

pub fn to_error(Failure(reason): Failure) -> Error {
    Error::from_reason(reason)
}

impl TypeName for Bytes {
    fn type_name() -> &'static str {
        "Uint8Array"
    }

    fn value_type() -> ValueType {
        ValueType::Object
    }
}

/// A copy in memory of the JavaScript engine. This is cheaper than memory of ours that the engine must return, and our
/// own copy is overwritten at once.
impl ToNapiValue for Bytes {
    unsafe fn to_napi_value(env: sys::napi_env, bytes: Bytes) -> napi::Result<sys::napi_value> {
        let copy = Uint8ArraySlice::copy_from(&Env::from_raw(env), &bytes[..])?;
        // SAFETY: the caller passes a valid environment.
        unsafe { ToNapiValue::to_napi_value(env, copy) }
    }
}
