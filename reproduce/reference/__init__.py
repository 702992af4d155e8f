"""The folder of reference data that tests and benchmarks compare with, built from public artifacts: `make reference`."""
