# Something is added to what a person confirmed.
#
# docs: Approved, the result is the value, trusted, with all its parts
# observer: trusted
# world 1: {"read": {"each": ["bob", ""]}}
# world 2: {"read": {"each": ["bob", "x"]}}
# sees: [[],{"error":"flow","message":"the argument `to` of `pay` must be labeled [] at most"}]
to = confirm(read(), "the payee")
pay(to + read(), 1)
