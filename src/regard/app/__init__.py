"""The same views over HTTP: models run here, traces are kept here, and a browser asks for what it shows.

protocol/  what travels, and how much of it   runners/   models that were opened, ready to run
studio/    what there is, and who works       security/  who may connect and ask
routes/    the addresses                      app.py     all of them behind the guard     serving.py  on a port
"""
