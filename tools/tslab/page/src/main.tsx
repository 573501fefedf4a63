// main: puts the page together.
import { render } from "preact";

import { Client } from "./api/client.js";
import { Model } from "./live/model.js";
import { Poller } from "./live/poller.js";
import * as theme from "./live/theme.js";
import { routeOf } from "./model/route.js";
import { App } from "./view/app.js";

const TOKEN = "tslab.token";

const client = new Client();
client.token = sessionStorage.getItem(TOKEN);
const model = new Model();
const poller = new Poller(client, model);

function useToken(token: string): void {
  client.token = token;
  sessionStorage.setItem(TOKEN, token);
  poller.now();
}

function follow(): void {
  model.go(routeOf(location.hash));
  poller.now();
}

theme.follow(() => model.changed());
addEventListener("hashchange", follow);
follow();

const page = document.getElementById("page");
if (page !== null) render(<App model={model} poller={poller} useToken={useToken} />, page);
