"""What tests share: a clock that stands still, fresh stores for every engine, and short ways to fill them."""
