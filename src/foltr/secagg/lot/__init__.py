"""A cohort drawn by lot, for federations whose cohort is too small to count every colluder into it."""
