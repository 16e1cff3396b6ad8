"""Images that many transitions show, stored once each."""

import zlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Shaped

_GROWTH = 1.25


class FrameStore:
    """Arrays of one shape and dtype, found by their content: equal ones share a number, and memory.

    ``put`` counts a use of each frame and ``release`` ends it; the place of a frame without uses is taken by
    the next new one. Room for ``num_frames`` is reserved, and grows when that is not enough.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype, num_frames: int):
        self._frames = np.zeros((num_frames, *shape), dtype)
        self.clear()

    def clear(self) -> None:
        """Forget all frames."""
        self._num_used = 0  # numbers from here on were never given
        self._free: list[int] = []
        self._uses: list[int] = []
        self._checksums: list[int] = []
        self._by_checksum: dict[int, list[int]] = {}

    def __len__(self) -> int:
        """How many different frames are in use."""
        return self._num_used - len(self._free)

    @property
    def nbytes(self) -> int:
        """Memory reserved for frames, in bytes."""
        return self._frames.nbytes

    def put(self, frames: Shaped[np.ndarray, "n ..."]) -> Int[np.ndarray, " n"]:
        """The numbers of these frames, which are copied if they are new."""
        return np.array([self._put(frame) for frame in np.ascontiguousarray(frames)], np.int64)

    def release(self, numbers: Int[np.ndarray, "..."]) -> None:
        """End one use of each of these frames; negative numbers are none."""
        for number in numbers.ravel().tolist():
            if number >= 0:
                self._release(number)

    def take(self, numbers: Int[np.ndarray, "*n"]) -> Shaped[np.ndarray, "..."]:
        """Copies of the frames with these numbers."""
        return self._frames.take(numbers, axis=0)

    def _put(self, frame: Shaped[np.ndarray, "..."]) -> int:
        content = frame.tobytes()
        checksum = zlib.crc32(content)
        alike = self._by_checksum.setdefault(checksum, [])
        for number in alike:
            # Bytes, not values: NaN equals itself, and 0.0 is not -0.0.
            if self._frames[number].tobytes() == content:
                self._uses[number] += 1
                return number
        number = self._new_number()
        self._frames[number] = frame
        self._uses[number] = 1
        self._checksums[number] = checksum
        alike.append(number)
        return number

    def _new_number(self) -> int:
        if self._free:
            return self._free.pop()
        if self._num_used == len(self._frames):
            self._grow()
        self._num_used += 1
        self._uses.append(0)
        self._checksums.append(0)
        return self._num_used - 1

    def _grow(self) -> None:
        # In place: the system moves pages of a large array instead of copying them. No view of it ever leaves.
        num_frames = int(len(self._frames) * _GROWTH) + 64
        self._frames.resize((num_frames, *self._frames.shape[1:]), refcheck=False)

    def _release(self, number: int) -> None:
        self._uses[number] -= 1
        if self._uses[number]:
            return
        checksum = self._checksums[number]
        alike = self._by_checksum[checksum]
        alike.remove(number)
        if not alike:
            del self._by_checksum[checksum]
        self._free.append(number)
