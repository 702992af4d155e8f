// The question of `guessing.py`.
export default {
  render({ model, el }) {
    // A view may be made before it stands on the page.
    const begin = (tries) => (el.isConnected ? ask({ model, el }) : tries && setTimeout(begin, 50, tries - 1));
    begin(200);
  },
};

function ask({ model, el }) {
  const area = el.closest(".jp-OutputArea"), { times, low, high, best, names, sure, line, other } = model.get("asked");
  if (!area || model.get("score")) {
    el.textContent = model.get("score");
    return;
  }
  el.className = "scene-guess";
  area.classList.add("scene-guessing");
  el.innerHTML = `<p><label>How many times as good is <b>${line}</b> as <b>${other}</b>? <output></output>
    <input type="range" min="-1" max="2" step="0.05" value="0"></label></p><p>Which line is best? <span></span></p>
    <button type="button">See</button> <button type="button">skip</button>`;
  const slider = el.querySelector("input"), [see, skip] = el.querySelectorAll(":scope > button"), buttons = [];
  const guessed = () => 2 ** slider.value, two = (x) => x.toFixed(2);
  (slider.oninput = () => { el.querySelector("output").textContent = `${two(guessed())} times`; })();
  for (const name of names) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: name });
    button.onclick = () => buttons.forEach((each) => each.setAttribute("aria-pressed", each === button));
    buttons.push(button);
  }
  el.querySelector("span").append(...buttons);
  const done = (score) => {
    area.classList.remove("scene-guessing");
    el.className = "";
    el.textContent = score;
    model.set("score", score || " ");
    model.save_changes();
  };
  skip.onclick = () => done("");
  see.onclick = () => {
    const said = buttons.find((b) => b.getAttribute("aria-pressed") === "true")?.textContent, off = Math.round(100 * (guessed() / times - 1));
    const within = guessed() >= low && guessed() <= high;
    const far = Math.abs(off) < 10 ? "right" : `${Math.abs(off)} % too ${off > 0 ? "high" : "low"}${within ? ", but within the interval" : ""}`;
    const which = said ? `; best: ${best}, you said ${said}: ${said === best ? "right" : "no"}` : `; best: ${best}`;
    done(`Your guess: ${two(guessed())} times, computed ${two(times)} (${two(low)} to ${two(high)}): ${far}${which}. Surely better than ${other}: ${sure || "none"}.`);
  };
}
