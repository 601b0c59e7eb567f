"""The sections of a plan, a module each; `sonic_eks.plan.sections` finds them."""
