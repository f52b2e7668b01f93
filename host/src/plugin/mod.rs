//! Components: compiled, cached, linked and called under limits. The only room that names wasmtime.
