// A file of its own, because the page's Content-Security-Policy lets no script stand in the page.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  filter: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  // Nobody outside is asked whether the document is valid.
  validatorUrl: null,
});
