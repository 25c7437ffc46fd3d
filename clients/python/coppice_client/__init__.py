"""A client of `coppice serve`: an agent's conversation and state, stored once or not at all."""
from .aio import AsyncFollow as AsyncFollow
from .aio import AsyncSession as AsyncSession
from .aio import AsyncStore as AsyncStore
from .aio import AsyncTurn as AsyncTurn
from .errors import *  # noqa: F403
from .follow import Follow as Follow
from .follow import Followed as Followed
from .operations import Resumed as Resumed
from .rawjson import Raw as Raw
from .requests import Limits as Limits
from .session import Session as Session
from .store import Store as Store
from .turn import Turn as Turn

__version__ = "0.1.0"
