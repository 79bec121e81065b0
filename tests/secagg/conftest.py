"""Its folder is where the tests of secure aggregation, also those of the model, find `small_rounds`."""
