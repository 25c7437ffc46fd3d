document.getElementById("app").textContent = "The viewer is not built: make web.";
