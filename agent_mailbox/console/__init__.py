"""The console: a local page on which the person sees everything and steps in. A door, and a process of its own.

    serve     the listening socket, the launch link, the end
    gate      who may in: launch links, sessions · guard: what every request must show, what every answer carries
    app       the routes · views: the pages · acts: what the person does · shown: records as a page shows them
    beside cards   the rail, an opened message · requests
    desk      the mailbox behind one lock · survey: what stands with everyone, counted in the background
    live      what is new, from the watched logs to every open page
    markup    other people's text as HTML that does nothing · charts: the pictures of the timeline

Holds no mailbox rule: it reads through the facade and acts through it, as ``user``. Its libraries come with the extra
``console`` and are imported by nothing else. It may die at any moment; no agent waits for it.
"""
