"""The plugin for pytest. It makes the modules that hooks of other systems import available to their tests."""


def pytest_configure(config):
    from tenterhook import testing

    testing.provide_modules(config.rootpath)
