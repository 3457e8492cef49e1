"""Pure decisions: values in, values out.  Time and chance are arguments.  Start at ``model``."""
