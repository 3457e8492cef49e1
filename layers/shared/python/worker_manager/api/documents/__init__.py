"""What tools and people are told of an API: references, JSON schemas and an OpenAPI document.

All of it is made from the routes and the models that also do the work, so that it cannot say
anything else.  It is made when first asked for and kept by the container; loading the API loads
none of it.  Where to read next: ``service`` (of what), ``schemas``, ``references`` (in
Taskcluster's format), ``openapi``; ``api.references`` serves them.
"""
