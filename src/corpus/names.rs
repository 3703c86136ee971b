//! AFL file names: formatting and parsing.
