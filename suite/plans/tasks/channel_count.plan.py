channels = get_channels()
counts = {channel: len(get_users_in_channel(channel)) for channel in channels}
biggest = max(counts, key=counts.get)
send_channel_message(channel="general", body=f"The biggest channel is {biggest}")
