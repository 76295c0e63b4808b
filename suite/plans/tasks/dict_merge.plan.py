defaults = {"language": "en", "days": 7}
given = {"days": 14}
settings = defaults | given
settings |= {"city": "Paris"}
print(settings["city"], settings["days"])
