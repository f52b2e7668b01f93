//! Every metric name, with its labels and a description.
