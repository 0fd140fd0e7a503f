"use strict";
// Buttons for what the numbers do without a script: move a step, and add one more. The numbers are what is saved.
{
  const rows = (list) => [...list.querySelectorAll(":scope > .pr-step")];

  const isBlank = (row) => row.classList.contains("pr-new") && !row.querySelector(".pr-resolver").value;

  const renumber = (list) => {
    let place = 0;
    for (const row of rows(list)) {
      row.querySelector(".pr-position").value = isBlank(row) ? "" : ++place;
    }
  };

  const button = (text, label, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    return made;
  };

  const move = (row, up) => {
    const other = up ? row.previousElementSibling : row.nextElementSibling;
    if (!other || (!up && isBlank(other))) return;
    up ? other.before(row) : other.after(row);
    renumber(row.parentElement);
  };

  const equip = (row) => {
    const box = document.createElement("div");
    box.className = "pr-move";
    box.append(
      button("↑", "Move up", (event) => { move(row, true); event.target.focus(); }),
      button("↓", "Move down", (event) => { move(row, false); event.target.focus(); }),
    );
    row.querySelector(".pr-head").append(box);
    const deleted = row.querySelector(".pr-delete input");
    const fade = () => row.classList.toggle("pr-gone", deleted.checked);
    deleted.addEventListener("change", fade);
    fade();
  };

  const addRow = (chain, list) => {
    const total = chain.querySelector(`[name="${chain.dataset.prefix}-TOTAL_FORMS"]`);
    const row = chain.querySelector("template").content.cloneNode(true).firstElementChild;
    for (const element of [row, ...row.querySelectorAll("*")]) {
      for (const name of ["id", "name", "for", "aria-describedby"]) {
        const value = element.getAttribute(name);
        if (value) element.setAttribute(name, value.replace("__prefix__", total.value));
      }
    }
    total.value = Number(total.value) + 1;
    equip(row);
    list.append(row);
    row.querySelector(".pr-resolver").focus();
  };

  const start = () => {
    for (const chain of document.querySelectorAll(".pr-chain")) {
      const list = chain.querySelector(".pr-steps");
      if (!list) continue;
      rows(list).forEach(equip);
      const add = button("Add another step", "Add another step", () => addRow(chain, list));
      add.className = "pr-add";
      list.after(add);
    }
  };

  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", start) : start();
}
