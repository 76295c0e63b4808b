import json

raw = read_file("settings.json")
try:
    settings = json.loads(raw)
except json.JSONDecodeError:
    settings = {}
language = settings.get("language", "en")
print(language)
