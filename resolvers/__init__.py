"""What is said to the model: resolvers, and the chains that people order them in.

Importing this package needs no ready app registry, so a host may write its resolvers anywhere.
"""

from resolvers.base import Resolver
from resolvers.chain import ResolverChain
from resolvers.registry import register_model, register_resolver, register_source

__all__ = ["Resolver", "ResolverChain", "register_model", "register_resolver", "register_source"]
