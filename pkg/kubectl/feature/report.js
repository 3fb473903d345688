
"use strict";
// Search and filters, kept in the fragment of the address, so that a link shows what was looked at.
(() => {
  const byId = id => document.getElementById(id);
  const form = byId("filters"), search = byId("search"), state = byId("state"), stage = byId("stage"), shown = byId("shown"), none = byId("none");
  const boxes = [...form.querySelectorAll("input[name=only]")];
  const rows = [...document.querySelectorAll("#matrix tbody tr[data-marks]")].map(row => ({ row, text: row.textContent.toLowerCase(), marks: row.dataset.marks.split(" ") }));
  const details = [...document.querySelectorAll(".details")];
  let opened = "";

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = boxes.filter(box => box.checked).map(box => box.value);
    let count = 0;
    for (const { row, text, marks } of rows) {
      const fits = words.every(word => text.includes(word)) && only.every(mark => marks.includes(mark)) &&
        (!state.value || row.dataset.state === state.value) && (!stage.value || row.dataset.stage === stage.value);
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    none.hidden = count > 0;
    shown.textContent = `${count} of ${rows.length} shown`;
  }

  // The address has only what is not as at first.
  function write() {
    const only = boxes.filter(box => box.checked).map(box => box.value).join(",");
    const parts = Object.entries({ q: search.value.trim(), state: state.value, stage: stage.value, only, feature: opened })
      .filter(([, value]) => value).map(([key, value]) => key + "=" + encodeURIComponent(value).replaceAll("%2C", ",").replaceAll("%2F", "/"));
    history.replaceState(null, "", "#" + parts.join("&"));
  }

  function select(list, value) {
    list.value = [...list.options].some(option => option.value === value) ? value : "";
  }

  function read() {
    const from = new URLSearchParams(location.hash.slice(1));
    const only = (from.get("only") || "").split(",");
    search.value = from.get("q") || "";
    select(state, from.get("state") || "");
    select(stage, from.get("stage") || "");
    for (const box of boxes) box.checked = only.includes(box.value);
    filter();
    const wanted = details.find(one => one.dataset.feature === from.get("feature"));
    if (wanted && wanted.showPopover) wanted.showPopover();
  }

  form.addEventListener("input", () => { filter(); write(); });
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { filter(); write(); search.focus(); }));
  for (const one of details) {
    one.addEventListener("toggle", event => {
      if (event.newState === "open") opened = one.dataset.feature;
      else if (opened === one.dataset.feature) opened = "";
      write();
    });
  }
  for (const link of document.querySelectorAll("a[data-link]")) link.href = "#" + link.dataset.link;
  // A fragment without "=" is a place in the page.
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return;
    read();
    byId("all").scrollIntoView();
  });
  addEventListener("keydown", event => {
    if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    search.focus();
    search.select();
  });
  form.hidden = false;
  read();
  if (/[#&](q|state|stage|only)=/.test(location.hash)) byId("all").scrollIntoView();
})();
