# A model of Pydantic refuses one of two secrets.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 99}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from pydantic import BaseModel, Field
class Level(BaseModel):
    n: int = Field(le=10)
try:
    Level(n=vault())
    valid = True
except ValueError:
    valid = False
post(valid)
