"""The guard inside frameworks: a module for each, which imports its framework.

Each takes a `Guard`, for a conversation of its own wherever the framework begins one, or a `GuardSession`, which is the conversation. What is
attached and how is on the page "Guard inside a framework" of the book.
"""
