"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const facts = read("facts");
  const byId = (id) => document.getElementById(id);
  const last = facts.points.length - 1;

  // Words and numbers -------------------------------------------------------------------------

  const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
  const whole = new Intl.NumberFormat("en");
  const cost = (x) => (Math.abs(x) >= 1000 ? whole.format(Math.round(x)) : digits.format(x));
  const percent = (x) => {
    const hundred = 100 * x;
    const near = hundred > 0 && hundred < 100 && (hundred < 10 || hundred > 99.5);
    return `${hundred.toFixed(near ? 1 : 0)}%`;
  };
  const many = (n, one, more = one + "s") => `${whole.format(n)} ${n === 1 ? one : more}`;
  const money = (x) => (facts.currency ? `${facts.currency}\u00a0${cost(x)}` : cost(x));
  const budgetOf = (p) => (p.budget === null ? "no limit" : money(p.budget));

  // Elements: text from data is set as text, never as markup -----------------------------------

  const put = (id, text) => { byId(id).textContent = text; };
  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };
  const within = (tag, children, name) => {
    const element = make(tag, undefined, name);
    element.append(...children);
    return element;
  };
  const number = (text) => make("td", text, "n");
  const fill = (id, rows) => byId(id).replaceChildren(...rows);
  const bar = (share) => {
    const element = make("i");
    element.style.setProperty("--share", share);
    return element;
  };
  const named = (name, aside) => {
    const parts = name.split(/(?<=[_./-])/); // long names may break after these
    const cell = within("td", parts.flatMap((part) => [part, make("wbr")]));
    if (aside) cell.append(" ", make("small", `· ${aside}`));
    return cell;
  };

  // Parts that follow the slider ---------------------------------------------------------------

  let at = facts.chosen;
  const views = {};

  function showFigures() {
    const p = facts.points[at];
    const saved = p.full_cost > 0 ? 1 - p.cost / p.full_cost : 0;
    const limit = p.budget === null ? "Without a limit" : p.budget === 0 ? "For nothing" : `At a budget of ${money(p.budget)}`;
    const over = p.budget !== null && p.cost > p.budget ? " The budget was kept on the validation rows of the training; these rows ask for more." : "";
    put("budget", budgetOf(p));
    put("dial-figures", `${percent(p.error)} error at ${money(p.cost)} a ${facts.row_name}`);
    byId("chosen").disabled = at === facts.chosen;
    put("chosen", at === facts.chosen ? "as chosen" : "Back to chosen");
    const slider = byId("slider");
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${budgetOf(p)}: error ${percent(p.error)}, cost ${cost(p.cost)}, ${many(p.trees, "tree")}`);
    put("lead", p.trees === 0
      ? `${limit} the forest asks nothing and always answers with the most common class: ${percent(p.error)} of rows get a wrong label.`
      : `${limit}, an average ${facts.row_name} costs ${money(p.cost)} instead of ${money(facts.total_cost)} for every feature, and ${percent(p.error)} of labels are wrong.${over}`);
    const plain = facts.peer ? `${facts.peer.name} would pay ${money(1000 * facts.peer.cost)}` : `the same forest with every tree asked would pay ${money(1000 * p.full_cost)}`;
    put("worth", `For 1,000 ${facts.row_name}s that is ${money(1000 * p.cost)}; ${plain}, and every feature would cost ${money(1000 * facts.total_cost)}.`);
    put("verdict", facts.verdicts[at]);
    put("lacks", facts.lacks[at]);
    byId("lacks").hidden = facts.lacks[at] === "";
    put("f-error", percent(p.error));
    put("f-interval", `${percent(p.low)} to ${percent(p.high)}`);
    put("f-cost-name", `Cost of a ${facts.row_name}`);
    put("f-cost", money(p.cost));
    put("f-features", `${digits.format(p.features)} of ${many(facts.n_features, "feature")}`);
    put("f-saved", percent(saved));
    put("f-full", `every tree asked: ${money(p.full_cost)}`);
    put("f-trees", whole.format(p.trees));
    put("f-what", `${percent(p.certain)} of ${facts.row_name}s certain`);
  }

  function spendingRow(line, most) {
    const share = line.rows === null ? "" : percent(line.rows);
    const turn = line.turn === null ? "" : line.turn.toFixed(1);
    const drawn = line.rows === null ? [] : [bar(line.paid / most)];
    const paid = within("div", [...drawn, make("span", line.paid < 10 ? line.paid.toFixed(2) : cost(line.paid))], "bar");
    const cells = [named(line.name, line.group), number(line.price === null ? "" : cost(line.price)), number(share), number(turn)];
    return within("tr", [...cells, within("td", [paid], "barred")]);
  }

  function showMoney() {
    const lines = facts.features[at];
    const listed = lines.filter((line) => line.rows !== null);
    const everyone = listed.filter((line) => line.rows === 1).length;
    put("money-text", lines.length === 0
      ? "Nothing is acquired."
      : `The most goes to ${listed[0].name}. ${everyone ? many(everyone, "feature is", "features are") + " acquired for every row; the others" : "All features"} only where they may decide. Turn is the mean place in the order of asking.`);
    const most = (some) => Math.max(...some.filter((line) => line.rows !== null).map((line) => line.paid), 1e-12);
    fill("features", lines.map((line) => spendingRow(line, most(lines))));
    const groups = facts.groups[at];
    byId("by-group").hidden = groups.length === 0;
    fill("groups", groups.map((line) => spendingRow(line, most(groups))));
  }

  function showExits() {
    const p = facts.points[at];
    put("exit-text", facts.scored
      ? `Rows pay for all scores, so every tree is asked: ${cost(p.cost)} for an average row.`
      : p.trees === 0
        ? "No row is asked for anything."
        : `A row leaves as soon as its label is certain, or believed enough. Asking every tree to the end would cost ${cost(p.full_cost)} instead of ${cost(p.cost)}, with ${percent(p.full_error)} wrong labels instead of ${percent(p.error)}.`);
  }

  function showConfusion() {
    const names = facts.confusion_classes;
    const head = within("tr", [make("th"), ...names.map((name) => make("th", name))]);
    const rows = facts.confusion[at].map((counts, truth) => {
      const total = counts.reduce((sum, count) => sum + count, 0);
      const cells = counts.map((count, label) => {
        const share = total ? count / total : 0;
        const cell = make("td", Math.round(100 * share) || (count ? "·" : "0"));
        cell.style.setProperty("--share", `${(45 * share).toFixed(1)}%`);
        cell.title = `truth ${names[truth]}, label ${names[label]}: ${many(count, "row")}`;
        cell.className = count ? "" : "none";
        return cell;
      });
      return within("tr", [make("th", names[truth]), ...cells]);
    });
    const shown = (share) => number(share === null ? "–" : percent(share));
    fill("by-class", facts.by_class[at].map(([recall, precision], c) =>
      within("tr", [named(facts.classes[c]), number(whole.format(facts.class_rows[c])), shown(recall), shown(precision)])));
    byId("confusion").style.setProperty("--classes", names.length);
    // a wide matrix takes the whole width, its heads stand upright
    byId("confusion").closest("section").classList.toggle("wide-matrix", names.length > 6);
    byId("confusion").replaceChildren(within("thead", [head]), within("tbody", rows));
  }

  function optionText(story) {
    const told = story.tellings[at];
    const verdict = told.label === story.truth ? "right" : "wrong";
    return `${story.row}: truth ${facts.classes[story.truth]}, label ${facts.classes[told.label]} (${verdict}), paid ${cost(told.spent)}`;
  }

  function beliefCell(leader, belief) {
    const track = within("div", [bar(belief)], "track");
    return within("td", [within("div", [make("b", facts.classes[leader]), track, make("span", percent(belief))], "bar")], "barred");
  }

  function way() { // the blocks of the flow in which the chosen row stands
    const story = facts.stories[byId("row").value];
    const names = story.tellings[at].steps.map(([feature]) => story.names[feature]);
    const found = [];
    let blocks = facts.flow.filter((block) => block.at === at);
    for (let step = 1; blocks.length; step++) {
      const name = names[step - 1];
      const beside = blocks.filter((block) => block.step === step);
      const block = beside.find((b) => (name === undefined ? b.kind === "decided" : b.kind === "asked" && b.name === name))
        ?? beside.find((b) => b.kind === "rare");
      if (!block) break;
      found.push({ ...block });
      blocks = block.kind === "asked" ? blocks.filter((b) => b.top > block.top - 1e-5 && b.bottom < block.bottom + 1e-5) : [];
    }
    return found;
  }

  function showStory() {
    [...byId("row").options].forEach((option, k) => { option.textContent = optionText(facts.stories[k]); });
    const story = facts.stories[byId("row").value];
    const told = story.tellings[at];
    views.flow?.data("way", way()).runAsync();
    let before = 0;
    const start = within("tr", [make("td", "before asking"), number(""), number(""), number("0"), beliefCell(...told.start)], "start");
    const steps = told.steps.map(([feature, spent, leader, belief]) => {
      const cells = [named(story.names[feature]), number(story.values[feature]), number(cost(spent - before)), number(cost(spent))];
      before = spent;
      return within("tr", [...cells, beliefCell(leader, belief)]);
    });
    const untold = told.asked - told.steps.length;
    if (untold > 0) steps.push(within("tr", [make("td", `and ${untold} more`), number(""), number(""), number(cost(told.spent)), make("td")]));
    fill("story", [start, ...steps]);
    const verdict = told.label === story.truth ? "which is right" : `but the truth is ${facts.classes[story.truth]}`;
    put("story-text", `${many(told.asked, "feature")} for ${cost(told.spent)}. The label is ${facts.classes[told.label]}, ${told.certain ? "certain: nothing more could change it" : "believed enough to stop"}; ${verdict}.`);
  }

  function show(place) {
    at = Math.min(Math.max(Number(place), 0), last);
    showFigures();
    showMoney();
    showExits();
    showConfusion();
    showStory();
    for (const view of Object.values(views)) view.signal("at", at).runAsync();
  }

  // Parts that stay ----------------------------------------------------------------------------

  function showCertificates() {
    const trees = facts.certificates;
    byId("certificates").hidden = trees.length === 0;
    const most = Math.max(...trees.map((tree) => tree.max_cost), 0);
    const ratios = trees.map((tree) => tree.ratio).filter((ratio) => ratio !== null);
    const proven = ratios.length
      ? `Of ${many(trees.length, "tree")}, ${ratios.length} carry a proof: the dearest row of such a tree pays at most ${digits.format(Math.max(...ratios))} times what the best tree as pure must make its dearest row pay.`
      : "These trees were not grown by the paper's rule, so no bound on the best possible tree is proven for them.";
    put("certificate-text", `At the chosen budget no row can pay more than ${cost(most)} in any single tree. ${proven}`);
    const shown = (x) => number(x === null ? "–" : digits.format(x));
    fill("trees", trees.map((tree, t) => within("tr", [number(String(t + 1)), number(cost(tree.max_cost)), shown(tree.lower_bound), shown(tree.ratio), shown(tree.factor)])));
  }

  function showData() {
    byId("seen").hidden = !facts.flattered;
    put("seen", `Training has seen ${percent(facts.seen ?? 0)} of these rows: errors seem smaller here than they are. Measure on other rows.`);
    const part = facts.rows < facts.rows_given ? `${many(facts.rows, "row")}, drawn at random from ${whole.format(facts.rows_given)}` : many(facts.rows, "row");
    put("about", `${part} · ${many(facts.n_features, "feature")} · ${many(facts.classes.length, "class", "classes")}`);
    put("data-text", `Every figure was measured on ${part}, with ${many(facts.n_features, "feature")} that cost at most ${cost(facts.total_cost)} together. The most common class alone is wrong for ${percent(facts.common_error)} of them. "Every tree asked" is the same forest, paying for every feature that any of its trees meets.`);
    const pairs = (id, lines) => fill(id, lines.map(([name, value, aside]) => within("tr", [named(name, aside), make("td", value)])));
    pairs("classes", facts.classes.map((name, c) => [name, many(facts.class_rows[c], "row")]));
    pairs("parameters", Object.entries(facts.parameters));
    pairs("prices", facts.prices.map(([name, price, group]) => [name, cost(price), group]));
    byId("peer-key").hidden = facts.peer === null;
    if (facts.peer) put("peer-name", facts.peer.name);
    put("foot", `Written by budgetforest ${facts.version} on ${facts.written}. This file is complete in itself and sends nothing anywhere.`);
  }

  async function draw() {
    const points = facts.points.map((p, k) => ({ ...p, at: k, budget: budgetOf(p) }));
    const datasets = {
      points, exits: facts.exits, calibration: facts.calibration, flow: facts.flow, way: way(),
      common: [{ error: facts.common_error }], peers: facts.peer ? [facts.peer] : [],
    };
    const options = { actions: false, renderer: "svg", ast: true, defaultStyle: false };
    for (const [id, spec] of Object.entries(read("charts"))) {
      const { view } = await vegaEmbed(byId(id), { ...spec, datasets: { ...spec.datasets, ...datasets } }, options);
      view.signal("at", at).runAsync();
      views[id] = view;
    }
    document.documentElement.dataset.drawn = "yes";
  }

  function followTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const root = document.documentElement;
    const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
    const name = () => put("theme", isDark() ? "Light" : "Dark");
    byId("theme").addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      name();
    });
    dark.addEventListener("change", name);
    name();
  }

  addEventListener("beforeprint", () => document.querySelectorAll("#data details").forEach((part) => { part.open = true; }));

  byId("slider").max = last;
  byId("slider").addEventListener("input", (event) => show(event.target.value));
  byId("chosen").addEventListener("click", () => show(facts.chosen));
  fill("row", facts.stories.map((_, k) => Object.assign(make("option"), { value: k })));
  byId("row").addEventListener("change", showStory);
  const isRight = (story) => story.tellings[facts.chosen].label === story.truth;
  const dear = Math.floor(0.7 * facts.stories.length);
  byId("row").value = Math.max(facts.stories.findIndex((story, k) => k >= dear && isRight(story)), 0);
  followTheme();
  showCertificates();
  showData();
  show(facts.chosen);
  draw();
})();
