"""Which models are asked, in which order, and for which use: found by the names in the settings or in a session.

A session writes down what it was begun with as one name (`About.model`): a model's; several with commas; an endpoint as
`URL MODEL CREDENTIAL`; or `choose=… answer=… judge=… else=…`, where there are models for one use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from edgeagent.driver.order import Use as AskUse
from edgeagent.errors import ConfigError
from edgeagent.runtime.config import ModelSettings, NamedModel, Settings, Use, check_named, names_for

Named = tuple[tuple[str, NamedModel], ...]

_TIERED = re.compile(r"((?:(?:choose|answer|judge)=[\w,-]+ )+)else=(.*)", re.DOTALL)


def with_chain(settings: Settings) -> ModelSettings:
    """The model's settings with the models that its name, its order and its uses mean. Raises ConfigError."""
    model = settings.model
    if found := _TIERED.fullmatch(model.name):
        recorded = dict(each.split("=") for each in found[1].split())
        uses = model.uses | {use: tuple(names.split(",")) for use, names in recorded.items()}
        model = replace(model, name=found[2], order=(), uses=uses)
    return _with_tiers(settings.models, _with_order(settings.models, model))


def alone(model: ModelSettings, name: str) -> ModelSettings:
    """The settings with this model in place of all that write; what compares texts stays."""
    return replace(model, name=name, order=(), uses={use: n for use, n in model.uses.items() if use == "embed"})


def _with_order(models: Mapping[str, NamedModel], model: ModelSettings) -> ModelSettings:
    if "://" in model.name:
        url, name, credential = (*model.name.split(" "), "", "")[:3]
        found = NamedModel(endpoint=url, model=name, credential=credential)
        check_named(found, "--endpoint")
        return replace(model, chain=(("endpoint", found),))
    names = model.order or tuple(model.name.split(","))
    if len(names) == 1 and names[0] not in models:
        return model
    return replace(model, name=",".join(names), chain=_called(models, names))


def _with_tiers(models: Mapping[str, NamedModel], model: ModelSettings) -> ModelSettings:
    found: dict[Use, Named] = {}
    for use, names in names_for(model).items():
        is_there = use != "embed" or names[0] in models
        found[use] = _called(models, names) if is_there else ((names[0], NamedModel(name=names[0])),)
    written = " ".join(f"{use}={','.join(n for n, _ in found[use])}" for use in sorted(found) if use != "embed")
    if written:
        base = model.chain or ((model.name, NamedModel(name=model.name)),)
        found = {"choose": found.get("choose", base), "answer": found.get("answer", base), **found}
        model = replace(model, name=f"{written} else={model.name}")
    return replace(model, tiers=tuple(found.items()))


def _called(models: Mapping[str, NamedModel], names: tuple[str, ...]) -> Named:
    missing = [name for name in names if name not in models]
    if missing:
        raise ConfigError(f"which model is {missing[0]}? Write [models.{missing[0]}] into edgeagent.toml")
    return tuple((name, models[name]) for name in names)


def orders_of(model: ModelSettings) -> dict[AskUse, Named]:
    """The models that write, by use and in the order in which they are asked; empty where the name is a file's."""
    found = {use: order for use, order in model.tiers if use == "choose" or use == "answer"}
    uses: tuple[AskUse, ...] = ("choose", "answer") if found or model.chain else ()
    return {use: found.get(use, model.chain) for use in uses}


def writers(model: ModelSettings) -> dict[str, NamedModel]:
    """All named models that write, each once."""
    return {name: each for order in orders_of(model).values() for name, each in order}


def judge_of(model: ModelSettings) -> Named:
    """The model that weighs for others, if there is one."""
    return dict(model.tiers).get("judge", ())


def embedder_of(model: ModelSettings) -> str:
    """The embedder that the settings name; '' leaves it to what was pulled."""
    return next((each.name for _, each in dict(model.tiers).get("embed", ())), "")


def one_of(model: ModelSettings, named: NamedModel) -> ModelSettings:
    """The settings of one of the models: those of all, and its name."""
    tiers = tuple(each for each in model.tiers if each[0] == "embed")
    return replace(model, name=named.name, order=(), uses={}, chain=(), tiers=tiers)


def uses_told(model: ModelSettings) -> str:
    """Which models are asked for which use, in a sentence."""
    uses = [*orders_of(model).items(), *(each for each in model.tiers if each[0] in ("judge", "embed"))]
    return "; ".join(f"{use}: {', else '.join(name for name, _ in order)}" for use, order in uses)


def own_weights(model: ModelSettings, wants: str) -> ModelSettings:
    """The first of the models whose weights are here, for what needs them. Raises ConfigError if there is none."""
    named = writers(model) | dict(judge_of(model))
    if not named:
        return model
    for each in named.values():
        if each.name:
            return one_of(model, each)
    raise ConfigError(f"no model behind an endpoint {wants}: name one whose weights are here with --model")


def named_endpoint(url: str, model: str, credential: str) -> str:
    """An endpoint as one name, by which a session finds it again; of the key it holds only where that is."""
    return " ".join((url, model, credential)).rstrip()
