// Command collector is an OpenTelemetry Collector with one pipeline: it receives spans over gRPC and HTTP, and writes
// each batch to standard output as one line of OTLP JSON.
//
// Usage: collector GRPC_ADDRESS HTTP_ADDRESS
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

const configuration = `yaml:
receivers:
  otlp:
    protocols:
      grpc: {endpoint: %q, include_metadata: true}
      http: {endpoint: %q, include_metadata: true}
exporters:
  lines: {}
service:
  telemetry: {metrics: {level: none}, logs: {level: info}}
  pipelines:
    traces: {receivers: [otlp], exporters: [lines]}
`

// lines is the type of the exporter that writes batches to standard output.
var lines = component.MustNewType("lines")

// writing keeps the lines of concurrent batches apart.
var writing sync.Mutex

func writeLine(_ context.Context, batch ptrace.Traces) error {
	text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(batch)
	if err != nil {
		return err
	}
	writing.Lock()
	defer writing.Unlock()
	_, err = fmt.Fprintf(os.Stdout, "%s\n", text)
	return err
}

func newLines(ctx context.Context, settings exporter.Settings, config component.Config) (exporter.Traces, error) {
	return exporterhelper.NewTraces(ctx, settings, config, writeLine)
}

func factories() (otelcol.Factories, error) {
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	noConfig := func() component.Config { return &struct{}{} }
	writer := exporter.NewFactory(lines, noConfig, exporter.WithTraces(newLines, component.StabilityLevelStable))
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](writer)
	return otelcol.Factories{
		Receivers: receivers,
		Exporters: exporters,
		Telemetry: otelconftelemetry.NewFactory(),
	}, err
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: collector GRPC_ADDRESS HTTP_ADDRESS")
	}
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				URIs:              []string{fmt.Sprintf(configuration, os.Args[1], os.Args[2])},
				ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := collector.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
