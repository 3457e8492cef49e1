"""Where the registry hears of workers, and where a quarantine takes hold: three kinds of queue.

``protocol`` says what each can do; ``builtin`` is our own, ``remote`` a Taskcluster queue that is
polled, ``events`` one that tells by itself what it sees.
"""
