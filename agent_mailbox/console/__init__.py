"""The console: a local web page where the person sees all mail, writes and decides. A door, in its own process.

    console_server  the listening socket, the launch link, the end
    guard     launch links and sessions, checks of every request, headers of every answer
    app       the routes · views: the pages · actions: the buttons · presenters: records as a page shows them
    details cards   the rail and an opened message · requests, whose inputs ``calls`` spells
    desk      the mailbox behind locks · survey: figures about all agents, counted in the background
    live      news, from the watched logs to every open page, as updates of that page
    markup    untrusted text as inert HTML · charts: the pictures of the timeline, and its counts
    task_board  the tasks by state · note_board: notes · agent_orders: an agent's mode, rules, name, end

Holds no mailbox rule: it reads and acts through the facade, as ``user``. Only it imports the libraries of the extra
``console``. It may die at any moment; no agent waits for it. Nothing here is on a hot way, so types are imported as all
else is.
"""
