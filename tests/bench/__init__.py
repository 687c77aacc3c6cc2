"""The benchmarks measure the function beside the least that a Lambda function can cost, and beside what it replaces."""
