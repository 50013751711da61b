"""The HTTP server kit: connections, requests and routing, with the native API behind them."""
