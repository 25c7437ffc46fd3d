"""A client of `coppice serve`: an agent's conversation and state, stored once or not at all."""
# Written by tools/generate.py. Do not edit.
from .aio import AsyncSession as AsyncSession
from .aio import AsyncStore as AsyncStore
from .errors import Conflict as Conflict
from .errors import CoppiceError as CoppiceError
from .errors import Deleted as Deleted
from .errors import Exists as Exists
from .errors import Fenced as Fenced
from .errors import Forbidden as Forbidden
from .errors import InvalidArgument as InvalidArgument
from .errors import KeyReused as KeyReused
from .errors import NotFound as NotFound
from .errors import OutcomeUnknown as OutcomeUnknown
from .errors import Unauthorized as Unauthorized
from .errors import Unavailable as Unavailable
from .follow import Follow as Follow
from .follow import Followed as Followed
from .operations import Resumed as Resumed
from .rawjson import Raw as Raw
from .requests import Limits as Limits
from .requests import Page as Page
from .requests import Pages as Pages
from .session import Session as Session
from .store import Store as Store
from .threads import AsyncFollow as AsyncFollow
from .threads import AsyncTurn as AsyncTurn
from .turn import Turn as Turn

__version__ = "0.1.0"
