"""The desk where rungs ask language models: each question once, within the caps, and everything is a fact."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import tenacity

from installers.models.billing import cost, misfit, prices_of, upper_bound
from installers.models.interface import Model, OverCap, Prompt, Reply, Request, RequestRefused, Trouble, Unasked
from installers.models.kept import PRODUCER, REPLY, TRY, Question, Tried, of_reply, of_try, refusal_of
from installers.models.purse import Purse
from installers.models.replay import ReplayModel
from miner.core.blobs import BlobStore
from miner.core.errors import Interrupted
from miner.core.ledger import fact_id
from miner.core.memo import Memo
from miner.core.records import Fact, Observation
from miner.core.settings import Endpoint, Price, Settings
from miner.core.spending import Caps, Spending

_FIRST_WAIT_S = 1.0


@dataclass(frozen=True)
class Answer:
    """A reply, the fact that holds it, and what it cost when it was asked for.

    Attributes:
        fact: id of the fact `model.reply`.
        tokens: of all its tries.
        money: of all its tries, in US dollars.
        seconds: of all its tries, without the waits between them.
    """

    reply: Reply
    fact: str
    tokens: int
    money: float
    seconds: float


class Desk:
    """Asks models for rungs; threads share it.

    Args:
        models: by name, in the order in which they are asked.
        prices: of the models.
        purse: takes what requests cost; None: they cost nothing, since no endpoint is asked.
        blobs: keep requests and replies.
        endpoint: how often to try, and how long to wait.
        stopped: set when the run is to end.
        clock: measures how long a try takes, in seconds.
        sleep: waits between tries; by default until `stopped` is set.

    Raises:
        ConfigError: a model has no price.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        prices: Mapping[str, Price],
        purse: Purse | None,
        blobs: BlobStore,
        endpoint: Endpoint,
        *,
        stopped: threading.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._models = dict(models)
        self._prices = prices_of(self._models, prices)
        self._purse = purse
        self._blobs = blobs
        self._endpoint = endpoint
        self._stopped = stopped or threading.Event()
        self._clock = clock
        self._sleep = sleep or tenacity.sleep_using_event(self._stopped)

    @property
    def answers(self) -> bool:
        """Whether what is not known can be asked."""
        return not any(isinstance(model, Nobody) for model in self._models.values())

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in the order in which they are asked."""
        return tuple(self._models)

    def ask(self, memo: Memo, request: Request, *, repository: str, prompt: Prompt, ordinal: int = 0) -> Answer:
        """Return the reply to a request: the known one, where it was asked before with this ordinal.

        Args:
            memo: known facts.
            request: what is asked.
            repository: on whose behalf: a cap counts by it.
            prompt: the template that the request was made from.
            ordinal: tells tries of the same request apart, so that ten tries are ten.

        Raises:
            OverCap: it could cost more than a cap leaves.
            RequestRefused: the endpoint does not take this request.
            ModelFault: the endpoint was at fault, for all tries.
        """
        fact = self._known_or_asked(memo, Question(request, repository, prompt, ordinal))
        if not fact.ok:
            raise refusal_of(fact)
        return Answer(
            reply=Reply.model_validate_json(self._blobs.get_text(fact.blobs["reply"])),
            fact=fact_id(fact.key),
            tokens=int(fact.measures["tokens"]),
            money=fact.measures["money"],
            seconds=fact.measures["seconds"],
        )

    def _known_or_asked(self, memo: Memo, question: Question) -> Fact:
        """Return the fact of a reply; a refusal is asked for once more, hours later, if somebody answers (law 2)."""

        def run() -> Observation:
            return self._ask(memo, question)

        try:
            return memo.measure(PRODUCER, REPLY, question.subject, question.inputs, run)
        except (Trouble, OverCap, Unasked):
            patient = memo.patient()
            if patient.peek(PRODUCER, REPLY, question.subject, question.inputs) is None:
                raise
            return patient.measure(PRODUCER, REPLY, question.subject, question.inputs, run)

    def _ask(self, memo: Memo, question: Question) -> Observation:
        """Ask until there is a reply, or it does not help to ask again."""
        request, tries = question.request, list[Tried]()
        if request.model not in self._models:
            raise RequestRefused(f"there is no model {request.model} here, only {', '.join(self._models)}")
        if why := misfit(request, self._prices[request.model]):
            return of_reply(question, RequestRefused(why), tries, self._blobs)
        trying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._helps),
            wait=self._wait,
            stop=tenacity.stop_after_attempt(self._endpoint.tries),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            said: Reply | RequestRefused = trying(self._try, memo, question, tries)
        except RequestRefused as refused:
            said = refused
        return of_reply(question, said, tries, self._blobs)

    def _helps(self, error: BaseException) -> bool:
        """Whether to try again after an error."""
        return isinstance(error, Trouble) and error.again and (error.wait_s or 0.0) <= self._endpoint.max_wait_s

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """Return how long to wait: what the endpoint asks for, else longer and longer, with jitter."""
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, Trouble) and error.wait_s is not None:
            return error.wait_s
        return tenacity.wait_random_exponential(multiplier=_FIRST_WAIT_S, max=self._endpoint.max_wait_s)(state)

    def _try(self, memo: Memo, question: Question, tries: list[Tried]) -> Reply:
        """Ask once; what it cost is settled and noted, whatever comes of it.

        A try that did not come to its end, or does not say what it used, has cost its bound.
        """
        if self._stopped.is_set():
            raise Interrupted("stopped before a language model was asked")
        price = self._prices[question.request.model]
        charged = bound = upper_bound(question.request, price)
        reservation = self._reserve(question, bound)
        began = self._clock()
        said: Reply | Trouble | RequestRefused
        try:
            said = self._complete(question)
            charged = bound if said.usage is None else cost(said.usage, price)
        except (Trouble, RequestRefused) as error:
            said = error
            charged = 0 if error.free else bound
        finally:
            self._settle(reservation, charged)
        tries.append(Tried(said, bound, charged, self._clock() - began))
        memo.record(PRODUCER, TRY, question.subject, question.inputs, of_try(question, tries[-1], self._blobs))
        if isinstance(said, Reply):
            return said
        raise said

    def _complete(self, question: Question) -> Reply:
        model = self._models[question.request.model]
        if isinstance(model, ReplayModel):
            return model.recall(question.request, question.ordinal)
        return model.complete(question.request)

    def _reserve(self, question: Question, bound: int) -> int | None:
        if self._purse is None:
            return None
        return self._purse.reserve(question.repository, question.request.model, bound, self._stopped)

    def _settle(self, reservation: int | None, charged: int) -> None:
        if self._purse is not None and reservation is not None:
            self._purse.settle(reservation, charged)


def desk_of(
    settings: Settings,
    spending: Spending,
    run_id: str,
    *,
    blobs: BlobStore | None = None,
    environ: Mapping[str, str] | None = None,
    stopped: threading.Event | None = None,
    parts: Iterable[str] = (),
) -> Desk | None:
    """Return the desk of a run; None where no model is to be asked (`off_because` says why).

    Args:
        settings: of the run.
        spending: the money of its ledger, which the run holds.
        run_id: of the run.
        blobs: keep requests and replies; those of the settings by default.
        environ: the environment; the process's own by default.
        stopped: set when the run is to end.
        parts: ids of runs that it goes on with: they share its cap.

    Raises:
        ConfigError: a model has no price, or an address, a file of certificates or of replies is wrong.
    """
    from installers.models.openai_model import OpenAIModel  # its SDK takes a second to import: not for every command

    environ = os.environ if environ is None else environ
    if off_because(settings, environ):
        return None
    endpoint, names = settings.endpoint, model_names(settings, environ)
    kept = blobs or BlobStore(settings.paths.blobs)
    if endpoint.replay is not None:
        prices = {name: settings.prices.get(name, Price(input=0, output=0)) for name in names}
        return Desk(dict.fromkeys(names, ReplayModel(endpoint.replay)), prices, None, kept, endpoint, stopped=stopped)
    prices = prices_of(names, settings.prices)
    model = OpenAIModel(endpoint, environ, stopped=stopped)
    purse = Purse(spending, run_id, Caps.of(settings.run), tuple(parts))
    return Desk(dict.fromkeys(names, model), prices, purse, kept, endpoint, stopped=stopped)


def recorded_desk(names: Iterable[str], blobs: BlobStore, endpoint: Endpoint) -> Desk:
    """Return a desk that knows what is a fact already, and asks nobody: a run that is repeated needs no endpoint.

    Args:
        names: of the models that were asked, in their order.
        blobs: keep requests and replies.
        endpoint: of the settings.
    """
    models = dict.fromkeys(names, Nobody())
    return Desk(models, dict.fromkeys(models, Price(input=0, output=0)), None, blobs, endpoint)


class Nobody:
    """Stands for an endpoint where there is none."""

    def complete(self, request: Request) -> Reply:
        """Say that nobody answers."""
        raise Unasked(f"{request.model} was not asked this before, and no endpoint is set")


def model_names(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the models, in the order in which they are asked."""
    named = environ.get(settings.endpoint.model_env, "").split(",")
    return tuple(dict.fromkeys(settings.measure.model.order or [name for one in named if (name := one.strip())]))


def off_because(settings: Settings, environ: Mapping[str, str] | None = None) -> str:
    """Return why no language model is asked, in one sentence without an end; "" where models are asked."""
    environ = os.environ if environ is None else environ
    endpoint, run = settings.endpoint, settings.run
    if endpoint.replay is None and not environ.get(endpoint.url_env, "").strip():
        return f"{endpoint.url_env} names no endpoint"
    if not model_names(settings, environ):
        return f"neither measure.model.order nor {endpoint.model_env} names a model"
    if run.max_cost is None:
        return "run.max_cost is not set: what they may cost has to be said"
    for name, cap in (
        ("run.max_cost", run.max_cost),
        ("run.max_cost_month", run.max_cost_month),
        ("run.max_cost_repository", run.max_cost_repository),
    ):
        if cap == 0:
            return f"{name} is 0"
    return ""
