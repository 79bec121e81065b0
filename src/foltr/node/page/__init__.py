"""The page of a node: search in a browser on this machine. Needs the extra `node`; `foltr.node` does not import it.

    app         routes over an open node
    actions     what a person does with a row
    security    who gets an answer: this user's browser, on loopback, from this page
    sign_ins    opening tokens, and browsers that were let in
    sign_out    ends sessions
    connections whose connections are accepted, how many, and for how long
    peers       who owns the other end of a connection
    search      a list with its filters, as the templates show it
    pages       history, learning, what leaves, index, settings, forgetting
    request_queue  one list is computed at a time, and none that nobody waits for
    handover    what commands hand over to the server
    following   the child process that keeps the index up to date while the page is served
    syncing     visits to the coordinators of federations while the page is served
    serve       the server on loopback
    server_log  its messages, bounded
    entrance    fresh addresses of a page that is served, and a browser that is started
    install     systemd user units and a desktop entry

Markup stands in templates/, the style sheet and scripts in static/.
"""
