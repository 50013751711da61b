"""The OpenAPI 3.1 document, made from the routes and the types behind them."""
