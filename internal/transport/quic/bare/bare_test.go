package bare_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/transport/quic/bare"
)

func TestTheBareRoadCarriesMessagesAndBulkAndLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	credentials, err := bare.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	server, err := bare.Listen(credentials)
	if err != nil {
		t.Fatal(err)
	}
	client, err := bare.Dial(t.Context(), credentials, server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := client.Echo(64); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Bulk(t.Context(), 3<<20+1); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := client.Echo(1); err == nil {
		t.Error("a closed connection still echoes")
	}
}
