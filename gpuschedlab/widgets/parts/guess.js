// Scores guesses of a page; what they hide is hidden by the style sheet alone.
(() => {
  document.documentElement.classList.add("gpuschedlab-scripted");
  if (window.gpuschedlabGuesses) return;
  window.gpuschedlabGuesses = true;
  const guessOf = (target) => target.closest?.(".gpuschedlab-question");
  const written = (times) => times.toFixed(2);
  const timesOf = (guess) => 2 ** Number(guess.querySelector("input").value);

  document.addEventListener("input", ({ target }) => {
    const guess = guessOf(target);
    if (!guess) return;
    guess.dataset.moved = true;
    guess.querySelector("output").textContent = `${written(timesOf(guess))} times`;
  });

  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.(".gpuschedlab-question button"), guess = button && guessOf(button);
    if (!guess) return;
    guess.querySelectorAll("button").forEach((other) => other.setAttribute("aria-pressed", other === button));
    if (!guess.querySelector("input")) guess.querySelector("details").open = true;
  });

  function numberScore(guess, [times, low, high]) {
    const mine = timesOf(guess), off = Math.round(100 * (mine / times - 1));
    const within = mine >= low && mine <= high ? ", but within the interval" : "";
    const far = Math.abs(off) < 10 ? "right" : `${Math.abs(off)} % too ${off > 0 ? "high" : "low"}${within}`;
    const begun = guess.dataset.moved ? `Your guess: ${written(mine)} times, computed` : "Computed:";
    return `${begun} ${written(times)} (${written(low)} to ${written(high)})${guess.dataset.moved ? `: ${far}` : ""}.`;
  }

  function choiceScore(guess, right) {
    const mine = guess.querySelector('button[aria-pressed="true"]')?.textContent;
    if (!mine) return `The answer: ${right}.`;
    return mine === right ? `You said ${mine}: right.` : `You said ${mine}: no, ${right}.`;
  }

  document.addEventListener("toggle", ({ target }) => {
    const guess = target.open && guessOf(target);
    if (!guess) return;
    const { times, right } = target.dataset, scores = [];
    if (times) scores.push(numberScore(guess, JSON.parse(times)));
    if (right) scores.push(choiceScore(guess, right));
    guess.querySelector(".gpuschedlab-verdict").textContent = scores.join(" ");
    window.dispatchEvent(new Event("resize")); // figures that had no width
  }, true);
})();
