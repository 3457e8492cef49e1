"""How we and Taskcluster's clients know each other.  Start at ``auth``, then ``hawk``."""
