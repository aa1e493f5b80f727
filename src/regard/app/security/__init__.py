"""Who may connect and ask: the guard before every route, each route's own decision, and limits on connections."""
