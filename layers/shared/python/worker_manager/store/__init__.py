"""DynamoDB, through PynamoDB, and nothing else: the only home of table knowledge.

``tables`` has the items' shapes, one module each has the verbs of ``pools``, ``workers``,
``plans``, ``pool_errors``, ``health`` and ``places`` (memberships and locations).
"""
