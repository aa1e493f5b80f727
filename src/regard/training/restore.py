"""Tensors of a checkpoint back into a model and its optimiser."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from regard.errors import RunError
from regard.training.optimizer import STATE


def put_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Write these weights into the model; what shares memory with them is among them under another name."""
    own = model.state_dict(keep_vars=True)
    unknown = set(weights) - set(own)
    wrong = [name for name, value in weights.items() if name in own and own[name].shape != value.shape]
    if unknown or wrong:
        raise RunError(
            f"the checkpoint holds {', '.join(sorted(unknown) or wrong)} of another model; "
            "resume with the settings and the data of the run"
        )
    places = {place_of(value) for name, value in own.items() if name in weights}
    missing = [name for name, value in own.items() if name not in weights and place_of(value) not in places]
    if missing:
        raise RunError(f"the checkpoint lacks {', '.join(missing)}; it is of another model")
    with torch.no_grad():
        for name, value in weights.items():
            spread(own[name], value)


def distinct(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model by name; those that share memory, as tied weights do, under their first name only.

    >>> one = nn.Linear(3, 3)
    >>> list(distinct(nn.Sequential(one, nn.ReLU(), one)))
    ['0.weight', '0.bias']
    """
    found = model.state_dict(keep_vars=True)
    seen: dict[object, str] = {}
    return {name: value for name, value in found.items() if seen.setdefault(place_of(value), name) == name}


def place_of(value: Tensor) -> object:
    """The same for tensors that share memory; all processes agree on it."""
    if hasattr(value, "device_mesh") or not value.numel():  # what is split may have nothing of it here
        return id(value)
    return value.data_ptr(), tuple(value.shape)


def put_optimizer(model: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give the optimiser back what it remembered of every weight."""
    for name, weight in model.named_parameters():
        remembered: dict[str, Tensor] = {}
        for key in STATE:
            value = tensors.get(f"optimizer.{key}.{name}")
            if value is None:
                continue
            if key == "step":
                remembered[key] = value.clone().to(weight.device if optimizer.defaults["fused"] else value.device)
            else:
                remembered[key] = torch.zeros_like(weight)
                spread(remembered[key], value)
        if remembered:
            optimizer.state[weight] = remembered


def spread(place: Tensor, value: Tensor) -> None:
    """Copy a whole tensor to where it belongs, also where that place is split over processes."""
    mesh = getattr(place, "device_mesh", None)
    if mesh is None:
        place.copy_(value)
        return
    from torch.distributed.tensor import distribute_tensor

    place.copy_(distribute_tensor(value, mesh, place.placements))  # type: ignore[attr-defined]


def average_of(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each weight over several checkpoints."""
    names = [name for name in states[0] if name.startswith("model.")]
    found = {}
    for name in names:
        values = [state[name] for state in states]
        mean = torch.stack([value.double() for value in values]).mean(0) if len(values) > 1 else values[0]
        found[name.removeprefix("model.")] = mean.to(values[0].dtype)
    return found
