"""200 % zoom: half as many CSS pixels, each twice as large. Nothing is cut or covered, and keys reach everything."""

import pytest

from tests.browser.studio import VIEWS

HALF = {"viewport": {"width": 640, "height": 430}, "device_scale_factor": 2}
TABS = 200  # presses of Tab in which all controls must have had the focus

VISIBLE = """
  const root = document.querySelector(".regard");
  const style = (element) => getComputedStyle(element);
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && element.getBoundingClientRect().width > 1 && element.getBoundingClientRect().height > 1;
  const named = (element) => element.getAttribute("aria-label") || element.textContent.trim().slice(0, 30)
    || element.title || element.tagName.toLowerCase();
  const controls = [...root.querySelectorAll("button, select, input, textarea, a[href], [role=tab]")].filter(shown);
  // A box that scrolls shows the rest of itself when somebody scrolls.
  const scrolls = (element) => {
    for (let one = element.parentElement; one && one !== document.documentElement; one = one.parentElement)
      if (/auto|scroll/.test(style(one).overflowX + style(one).overflowY)) return one;
    return null;
  };
  // The part of an element that its scrolling ancestors let through.
  const seen = (element) => {
    let { left, top, right, bottom } = element.getBoundingClientRect();
    for (let one = scrolls(element); one; one = scrolls(one)) {
      const box = one.getBoundingClientRect();
      left = Math.max(left, box.left); top = Math.max(top, box.top);
      right = Math.min(right, box.right); bottom = Math.min(bottom, box.bottom);
    }
    return { left, top, right, bottom };
  };
"""
OUTSIDE = f"""() => {{ {VISIBLE}
  return controls.filter((element) => {{
    const box = element.getBoundingClientRect();
    const out = box.left < -1 || box.top < -1 || box.right > innerWidth + 1 || box.bottom > innerHeight + 1;
    return out && scrolls(element) === null;
  }}).map(named);
}}"""
CUT = f"""() => {{ {VISIBLE}
  return [...root.querySelectorAll("button, label, p, h1, h2, h3, dt, dd, span, td, th, figcaption")].filter(shown)
    .filter((element) => {{
      if (element.clientWidth === 0 || element.title || element.closest("[title]") || element.matches(".chips, .cut *"))
        return false; // the whole text is told in its title
      const hides = /hidden|clip/.test(style(element).overflowX + style(element).overflowY);
      return hides && element.textContent.trim() !== ""
        && (element.scrollWidth > element.clientWidth + 2 || element.scrollHeight > element.clientHeight + 2);
    }}).filter((element) => style(element).clipPath === "none" && element.getBoundingClientRect().width > 2).map(named);
}}"""
COVERED = f"""() => {{ {VISIBLE}
  const found = [];
  for (const [i, one] of controls.entries())
    for (const other of controls.slice(i + 1)) {{
      if (one.contains(other) || other.contains(one)) continue;
      const a = seen(one), b = seen(other);
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && tall > 2) found.push(`${{named(one)}} and ${{named(other)}}`);
    }}
  return found;
}}"""
WAITING = f"""() => {{ {VISIBLE}
  return controls.filter((element) => !element.disabled && element.tabIndex >= 0
    && !(element.type === "file") && !element.dataset.reached).map(named);
}}"""
REACHED = """() => {
  const now = document.activeElement;
  if (now) now.dataset.reached = "yes";
  if (!now?.matches("button, select, input, textarea, [role=tab]")) return null; // a large table scrolls by keys
  const box = now.getBoundingClientRect();
  return [box.left, box.top, box.right, box.bottom];
}"""


def test_at_twice_the_size_nothing_is_cut_or_covered_and_keys_reach_every_control(open_in):
    studio = open_in("served", "stack", **HALF)
    page = studio.page
    assert page.evaluate("[innerWidth, devicePixelRatio]") == [640, 2]
    for view in VIEWS:
        if view in ("image", "training", "readings"):
            continue  # this trace has no patches and was read by one model, and the server has no training
        studio.open(view)
        if "settled" in studio.probes(view):
            studio.settled(view)
        studio.shot(f"zoom-{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 640, view
        assert page.evaluate(OUTSIDE) == [], view
        assert page.evaluate(CUT) == [], view
        assert page.evaluate(COVERED) == [], view
        left = reach(page)
        assert left == [], f"{view}: Tab never came to {left}"


def reach(page):
    """The controls that Tab has not come to; each that it came to was in sight."""
    page.evaluate("document.querySelectorAll('[data-reached]').forEach((one) => delete one.dataset.reached)")
    for _ in range(TABS):
        if not page.evaluate(WAITING):
            break
        page.keyboard.press("Tab")
        box = page.evaluate(REACHED)
        if box is not None:
            left, top, right, bottom = box
            assert (left > -2, top > -2, right < 642, bottom < 432) == (True,) * 4, box
    return page.evaluate(WAITING)


@pytest.mark.parametrize("drawer", ["side", "panel"])
def test_at_twice_the_size_the_sides_open_over_the_view_and_close_by_a_key(open_in, drawer):
    studio = open_in("served", "stack", "#/view=map", **HALF)
    studio.settled("map")
    studio.root.locator(".tabs .drawer-button, .tabs .narrow").nth(0 if drawer == "side" else 1).click()
    opened = studio.root.locator(f".middle > .{drawer}")
    studio.eventually(lambda: opened.is_visible())
    box = opened.bounding_box()
    assert (box["x"] >= 0, box["x"] + box["width"] <= 640) == (True, True)
    studio.shot(f"zoom-drawer-{drawer}")
    assert studio.page.evaluate(CUT) == []
    studio.page.keyboard.press("Escape")
    studio.eventually(lambda: not opened.is_visible())
