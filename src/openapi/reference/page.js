// A separate file, because the Content-Security-Policy of the page forbids inline scripts.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  filter: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  // Disables the external validator of Swagger UI.
  validatorUrl: null,
});
