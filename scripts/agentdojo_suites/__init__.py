"""Runs the tasks and attacks of AgentDojo through the Python package of Entail."""
