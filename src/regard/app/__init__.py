"""The same views over HTTP: models run here, traces are kept here, and a browser asks for what it shows.

guard.py   who may ask at all                 access.py   each route's decision about that
studio.py  what there is, and who works       models.py   what can run           opened/   models that were opened
traces.py  what is kept                       trainings.py  runs of training     routes/   the addresses
"""
