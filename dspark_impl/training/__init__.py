"""Training of DSpark and of the drafters it is compared with (paper sections 3.3 and 5.1)."""
